"""The published studies, each as a whole: what of it is measured again here, and its figures beside ours."""
