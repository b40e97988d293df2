"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# No deadline for one example: machines are shared, and a slow one is no defect. The profile
# that Hypothesis takes with CI=true is derandomized besides; this keeps that.
settings.register_profile(
    "here",
    settings.default,
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("here")
