"""The page and the JSON interface behind `whyscore serve`."""
