"""Those who say passed, refused or unjudged; each gives a `domain.verdict.Verdict`."""
