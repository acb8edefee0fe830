package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/x/term"

	"github.com/opmeter/opmeter/internal/report/text"
)

// formats of the log.
const (
	formatAuto = "auto" // lines on a terminal, JSON elsewhere
	formatText = "text"
	formatJSON = "json"
)

// logTo returns a log that writes to a file.
func logTo(f *os.File, format string, level slog.Level) (*slog.Logger, error) {
	switch format {
	case formatAuto:
		if !term.IsTerminal(f.Fd()) {
			return logTo(f, formatJSON, level)
		}
	case formatJSON:
		return slog.New(slog.NewJSONHandler(f, &slog.HandlerOptions{Level: level})), nil
	case formatText:
	default:
		return nil, fmt.Errorf("--log %q: expected %s, %s or %s", format, formatAuto, formatText, formatJSON)
	}
	return slog.New(&lines{out: f, level: level, mu: &sync.Mutex{}}), nil
}

// lines writes each record as a line for people: the time of day, the message, then names with
// values. Texts come from models and records, so control characters are escaped.
type lines struct {
	out   io.Writer
	level slog.Level
	mu    *sync.Mutex
	rest  string // what each line ends with
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= l.level }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Time.Format("15:04:05 "))
	if r.Level >= slog.LevelWarn {
		b.WriteString(strings.ToLower(r.Level.String()) + ": ")
	}
	b.WriteString(text.Clean(r.Message))
	r.Attrs(func(a slog.Attr) bool { b.WriteString(pair(a)); return true })
	b.WriteString(l.rest + "\n")
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.out, b.String())
	return err
}

func (l *lines) WithAttrs(as []slog.Attr) slog.Handler {
	next := *l
	for _, a := range as {
		next.rest += pair(a)
	}
	return &next
}

// WithGroup returns the same: the program has no groups.
func (l *lines) WithGroup(string) slog.Handler { return l }

// pair writes an attribute.
func pair(a slog.Attr) string {
	v := text.Clean(a.Value.String())
	if v == "" || strings.ContainsAny(v, " \"=") {
		v = `"` + strings.ReplaceAll(v, `"`, `\"`) + `"`
	}
	return "  " + a.Key + "=" + v
}
