package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/web/e2e/browser"
	"github.com/opmeter/opmeter/web/e2e/speed"
)

// TestMillionBars lets a page with a million bars measure itself and prints the
// figures. It holds the page to its work, never to a time: ./bench -check does that.
func TestMillionBars(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if _, err := browser.Path(); err != nil {
		material.Skip(t, "Chromium is absent: "+err.Error())
	}
	b, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	file, err := speed.Page(folder, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file)
	r, err := speed.Run(b, file)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s: %v\n", filepath.Base(file), r)
	if r.Bars < 1_000_000 || r.Frames < 1 || r.OpenMS <= 0 || r.Seconds <= 0 {
		t.Errorf("the page measured %+v", r)
	}
}
