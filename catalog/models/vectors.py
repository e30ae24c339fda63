"""Vectors of tools' texts, by encoder. They can be made again from the texts: they are in no backup."""

from django.db import models


class EncoderState(models.Model):
    """How far the vectors of one encoder are."""

    name = models.CharField(max_length=250, unique=True)
    dimensions = models.PositiveIntegerField(default=0, help_text="0 until the first vectors are stored.")
    number = models.PositiveBigIntegerField(
        default=0, help_text="Grows when vectors were stored: indexes then take them over."
    )
    edition = models.PositiveIntegerField(
        default=0, help_text="Grows when all vectors are made anew: indexes then drop those they have."
    )
    version = models.PositiveBigIntegerField(
        default=0, help_text="The catalog's version up to which every tool has its vector."
    )
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0, help_text="Tools, when they were last counted.")
    problem = models.TextField(blank=True, default="", help_text="Why the last attempt failed.")
    problem_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(help_text="When a node last had this encoder in force.")
    looked_over_at = models.DateTimeField(
        null=True, help_text="When its vectors were last compared with the tools there are."
    )

    def __str__(self) -> str:
        return f"{self.name}: {self.done} of {self.total}"


class ToolVector(models.Model):
    """A text's vector, as 16-bit floats."""

    encoder = models.ForeignKey(
        EncoderState, on_delete=models.CASCADE, related_name="vectors", db_index=False
    )
    digest = models.CharField(max_length=32, help_text="Of the text that was encoded.")
    vector = models.BinaryField()
    unused_since = models.DateTimeField(null=True, help_text="When no tool was first seen to have the text.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["encoder", "digest"], name="tool_vector_once_per_text"),
        ]

    def __str__(self) -> str:
        return f"{self.digest} by {self.encoder_id}"
