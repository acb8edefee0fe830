package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestCompared opens every view of comparisons in both themes, on a wide and on a narrow screen,
// without and with a selected row.
func TestCompared(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"compared", "several compared", "hostile compared"} {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int{1280, 390} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, theme, width), func(t *testing.T) {
					for _, tab := range []string{"summary", "layers", "graph"} {
						for _, row := range []string{"", "3"} {
							s := open(t, name, "#/summary?row="+row+"&tab="+tab+"&theme="+theme, width, 900)
							s.wait(`document.querySelector("main")?.innerText.length > 40`)
							for _, fault := range s.audit() {
								t.Errorf("%s, row %q: %s", tab, row, fault)
							}
							if over := eval[int](s, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
								t.Errorf("%s: the page is %d pixels too wide: %q", tab, over, s.wide())
							}
							s.picture(strings.ReplaceAll(name, " ", "-") + "-" + tab + "-" + theme + fmt.Sprint("-", width) + row)
						}
					}
				})
			}
		}
	}
}
