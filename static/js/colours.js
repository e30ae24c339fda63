// The colours of the theme in force, for what is drawn on a canvas.

export function colourOf(variable) {
  const probe = document.createElement("span");
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

export function channelsOf(variable) {
  return colourOf(variable).match(/[\d.]+/g).slice(0, 3).map(Number);
}
