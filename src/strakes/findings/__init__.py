"""Results of a run as frozen values: portrait, questions, answers, results, places."""
