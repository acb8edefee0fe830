package operators

import "testing"

// TestTables reads every line of the tables and asks that each operator is in one.
func TestTables(t *testing.T) {
	t.Parallel()
	r := Registry()
	for _, s := range r.Schemas {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, d := range r.All() {
		known := false
		for _, s := range r.Schemas {
			known = known || s.Has(d.Domain, d.Name, d.Since)
		}
		if !known {
			t.Errorf("%s %s of version %d is in no table", d.Domain, d.Name, d.Since)
		}
	}
}
