package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report/text"
)

// TestLog writes texts of a hostile model: one line each, without control characters, or JSON.
func TestLog(t *testing.T) {
	t.Parallel()
	evil := "a\nb\x1b[31m\u202e\u009b \"c\"=d"
	for format, check := range map[string]func(line string) bool{
		"text": func(line string) bool {
			want := regexp.MustCompile(`^\d\d:\d\d:\d\d warn: failed: .*  job=1a  file=".*"  worker=far$`)
			return want.MatchString(line) && !strings.ContainsFunc(line, text.Hidden)
		},
		"json": func(line string) bool {
			var v map[string]any
			return json.Unmarshal([]byte(line), &v) == nil && v["file"] == evil && v["worker"] == "far" && v["level"] == "WARN"
		},
		"auto": func(line string) bool { return json.Valid([]byte(line)) }, // a file is not a terminal
	} {
		name := filepath.Join(t.TempDir(), "log")
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		log, err := logTo(f, format, slog.LevelInfo)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("not this")
		log.With("worker", "far").Warn("failed: "+evil, "job", "1a", "file", evil)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if line, ok := strings.CutSuffix(string(got), "\n"); !ok || strings.Contains(line, "\n") || !check(line) {
			t.Errorf("%s: %q", format, got)
		}
	}
	if _, err := logTo(os.Stderr, "xml", slog.LevelInfo); err == nil || !strings.Contains(err.Error(), "expected auto") {
		t.Errorf("format xml: %v", err)
	}
}
