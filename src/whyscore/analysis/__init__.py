"""The analyses, one public function each: a plan, one score call, a fit."""
