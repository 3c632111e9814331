"""Early exits in the search: which SubNet a budget of the expected cost of a picture is for."""
