package text

import "testing"

func TestWidth(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"":                         0,
		"conv1":                    5,
		"é":                        1,
		"e\u0301":                  1, // a letter and a combining accent
		"語":                        2,
		"👩\u200d💻":                 2, // two emoji joined into one
		"±\u00a0…✗":                4,
		Bold.Render("語") + "x":     3,
		BoldYellow.Render("slow!"): 5,
	} {
		if got := Width(line); got != want {
			t.Errorf("%q takes %d columns, expected %d", line, got, want)
		}
	}
}

func TestStyle(t *testing.T) {
	t.Parallel()
	if got, want := BoldRed.Render("x"), "\x1b[1;31mx\x1b[m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Bold.Render(""); got != "" {
		t.Errorf("an empty line becomes %q", got)
	}
}
