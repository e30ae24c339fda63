// Builds everything in static/vendor out of the packages that package.json pins; `make vendor` runs it where they are installed.
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { build, transform } from "esbuild";
import { PurgeCSS } from "purgecss";

const [project] = process.argv.slice(2);
const vendor = path.join(project, "static/vendor");
const PACKAGES = path.resolve("node_modules");
// The recipe, which no page loads, and what the sums themselves stand in.
const NOT_BUILT = new Set(["README.md", "SHA256SUMS", ".npmrc", "build.mjs", "package.json", "package-lock.json"]);
// Its package comes without the text of its licence.
const KEPT = new Set(["tabler/LICENSE", "echarts/entry.js"]);
const TARGET = ["es2022", "chrome123", "firefox120", "safari17.5"]; // the first that know light-dark()

// For styles: what Django and browsers write, and classes that code puts together.
const WRITTEN_ELSEWHERE = ["html", "body", "head", "input", "select", "textarea", "option", "ul", "li", "type", "data-bs-theme"];
const PUT_TOGETHER = ["icon"];

const FONTS = {
  inter: ["inter-latin-ext-wght-normal.woff2", "inter-latin-wght-normal.woff2"],
  "jetbrains-mono": ["jetbrains-mono-latin-wght-normal.woff2"],
};
const LICENCES = {
  "echarts/LICENSE": "echarts/LICENSE",
  "echarts/NOTICE": "echarts/NOTICE",
  "echarts/LICENSE-d3": "echarts/licenses/LICENSE-d3",
  "echarts/LICENSE-tslib": "tslib/LICENSE.txt",
  "echarts/LICENSE-zrender": "zrender/LICENSE",
  "inter/LICENSE": "@fontsource-variable/inter/LICENSE",
  "jetbrains-mono/LICENSE": "@fontsource-variable/jetbrains-mono/LICENSE",
  "tabler-icons/LICENSE": "@tabler/icons/LICENSE",
};

async function filesBelow(folder, endings) {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

async function textsBelow(folders, endings) {
  const files = (await Promise.all(folders.map((folder) => filesBelow(path.join(project, folder), endings)))).flat();
  return Promise.all(files.map((file) => readFile(file, "utf8")));
}

async function versionOf(name) {
  return JSON.parse(await readFile(path.join(PACKAGES, name, "package.json"), "utf8")).version;
}

async function place(file, content) {
  await mkdir(path.dirname(path.join(vendor, file)), { recursive: true });
  await writeFile(path.join(vendor, file), content);
}

async function emptyVendor() {
  for (const file of await filesBelow(vendor, [""])) {
    const name = path.relative(vendor, file);
    if (!NOT_BUILT.has(name) && !KEPT.has(name)) await rm(file);
  }
}

async function buildCharts() {
  const made = await build({
    stdin: { contents: await readFile(path.join(vendor, "echarts/entry.js"), "utf8"), resolveDir: process.cwd() },
    bundle: true,
    format: "esm",
    legalComments: "none",
    minify: true,
    target: TARGET,
    write: false,
  });
  const banner = `/*! Apache ECharts ${await versionOf("echarts")}, Apache-2.0, see LICENSE */\n`;
  await place("echarts/echarts.min.js", banner + made.outputFiles[0].text);
}

// Only what stands in a class attribute counts as a class: text has words that are Tabler's names, too.
// Between the tags of a template stand the words it chooses from, so all of the attribute is taken.
function namesIn(text) {
  const classes = [];
  for (const [, names] of text.matchAll(/class(?:Name)?(?:="|"[:\]]\s*=?\s*"| = ")((?:\{%.*?%\}|\{\{.*?\}\}|[^"])*)"/g)) {
    classes.push(...(names.match(/[\w-]+/g) ?? []));
  }
  const tags = [...text.matchAll(/<([a-z][a-z0-9]*)/g)].map(([, tag]) => tag);
  const attributes = [...text.matchAll(/[\s"]([a-z][a-z-]*)(?==")/g)].map(([, name]) => name);
  return { classes, tags, attributes: { names: attributes, values: [] }, ids: [], undetermined: [] };
}

async function buildStyles() {
  const texts = [
    ...(await textsBelow(["templates"], [".html"])),
    ...(await textsBelow(["catalog", "sessions", "toolsearch_site"], [".py"])),
    ...(await textsBelow(["static/js"], [".js"])),
  ];
  const [{ css }] = await new PurgeCSS().purge({
    content: texts.map((raw) => ({ raw, extension: "html" })),
    css: [{ raw: await readFile(path.join(PACKAGES, "@tabler/core/dist/css/tabler.css"), "utf8") }],
    defaultExtractor: namesIn,
    safelist: [...WRITTEN_ELSEWHERE, ...PUT_TOGETHER],
    fontFace: true,
    keyframes: true,
  });
  const small = await transform(css.replace(/@charset[^;]*;|\/\*# sourceMappingURL=.*?\*\//g, ""), {
    legalComments: "inline",
    loader: "css",
    minify: true,
    target: TARGET,
  });
  await place("tabler/tabler.min.css", small.code);
}

async function buildIcons() {
  const [templates, navigation] = [
    (await textsBelow(["templates"], [".html"])).join("\n"),
    (await textsBelow(["toolsearch_site"], ["navigation.py"])).join("\n"),
  ];
  const names = new Set([
    ...[...templates.matchAll(/{% icon "([\w-]+)"/g)].map(([, name]) => name),
    ...[...navigation.matchAll(/Entry\("[^"]+", "\w+", "([\w-]+)"/g)].map(([, name]) => name),
  ]);
  const symbols = await Promise.all([...names].sort().map(drawSymbol));
  await place("tabler-icons/sprite.svg", `<svg xmlns="http://www.w3.org/2000/svg">\n${symbols.join("\n")}\n</svg>\n`);
}

async function drawSymbol(name) {
  const source = await readFile(path.join(PACKAGES, `@tabler/icons/icons/outline/${name}.svg`), "utf8");
  const [, inner] = source.match(/<svg[^>]*>(.*)<\/svg>/s);
  const paths = inner.replace(/<path stroke="none"[^>]*\/>/g, "").replace(/\s*\n\s*/g, "").replace(/ \/>/g, "/>").trim();
  const look = 'viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"';
  return `<symbol id="${name}" ${look}>${paths}</symbol>`;
}

async function copyFonts() {
  for (const [family, files] of Object.entries(FONTS)) {
    await mkdir(path.join(vendor, family), { recursive: true });
    for (const file of files) {
      await cp(path.join(PACKAGES, "@fontsource-variable", family, "files", file), path.join(vendor, family, file));
    }
  }
}

async function copyLicences() {
  for (const [file, source] of Object.entries(LICENCES)) {
    await place(file, await readFile(path.join(PACKAGES, source), "utf8"));
  }
}

// Of every file, the recipe's too: what is served is what was built, by what was looked at.
async function writeSums() {
  const files = (await filesBelow(vendor, [""])).map((file) => path.relative(vendor, file));
  const wanted = files.filter((name) => name !== "SHA256SUMS").sort();
  const lines = await Promise.all(
    wanted.map(async (name) => {
      const digest = createHash("sha256").update(await readFile(path.join(vendor, name))).digest("hex");
      return `${digest}  ./${name}\n`;
    }),
  );
  await writeFile(path.join(vendor, "SHA256SUMS"), lines.join(""));
}

await emptyVendor();
await Promise.all([buildCharts(), buildStyles(), buildIcons(), copyFonts(), copyLicences()]);
await writeSums();
