"""What a hosted repository runs and shows: workflow, templates, hooks, changelog."""
