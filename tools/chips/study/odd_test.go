package study

import (
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestOddRows sets aside one core of the tables, whose only row in plain C takes 182
// cycles a product.
func TestOddRows(t *testing.T) {
	t.Parallel()
	d, err := LoadAll(material.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	for g, odd := range oddBuilds(d.Measurements) {
		if want := g == group(reference, "", "cortex-m4"); odd != want {
			t.Errorf("%v is set aside: %v", g, odd)
		}
	}
}
