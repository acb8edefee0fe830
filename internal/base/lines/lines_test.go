package lines

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 40)
	for _, tt := range []struct{ name, text, line, err string }{
		{"whole", "ab\ncd", "ab", ""},
		{"empty line", "\ncd", "", ""},
		{"cut", "ab", "ab", "EOF"},
		{"nothing", "", "", "EOF"},
		{"longer than the buffer", long + "\n", long, ""},
		{"too long", strings.Repeat("x", 100) + "\n", "", "longer than 64 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(bufio.NewReaderSize(strings.NewReader(tt.text), 16), 64)
			if text := ""; string(got) != tt.line || (err != nil) != (tt.err != text) || err != nil && err.Error() != tt.err {
				t.Errorf("%q, %v, want %q, %q", got, err, tt.line, tt.err)
			}
			if tt.err == "EOF" && !errors.Is(err, io.EOF) {
				t.Errorf("%v is not the end", err)
			}
		})
	}
}
