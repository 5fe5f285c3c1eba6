"""The jobs, one public function each: plan, one score call, fit."""
