package work

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/server/queue"
)

// divide takes the settings of a profile apart: the engine is all before the first NAME=VALUE.
func divide(text string) (engine, settings string) {
	words := strings.Fields(text)
	n := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "=") })
	if n < 0 {
		n = len(words)
	}
	return strings.Join(words[:n], " "), strings.Join(words[n:], " ")
}

// settingsOf adds to the settings of a result what else makes its figures differ from those of
// other jobs: options that change the work, and the format of the model. A study has its own
// settings, whatever jobs go on with it.
func settingsOf(j *queue.Job, settings, format string) string {
	study := j.Kind == Compress || j.Kind == Apply || j.Kind == Bench
	words := strings.Fields(settings)
	set := func(name, value string) {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, name+"=") }) {
			words = append(words, name+"="+value)
		}
	}
	for i := range options {
		o := &options[i]
		value, ok := j.Options[o.Name]
		if !ok || !o.work || study {
			continue
		}
		if o.Many { // in any order
			all := strings.Split(value, ",")
			slices.Sort(all)
			value = strings.Join(all, ",")
		}
		set(o.Name, value)
	}
	if format != "" && !strings.ContainsAny(format, " =") {
		set("format", format)
	}
	out := strings.Join(words, " ")
	if len(out) > longest {
		sum := sha256.Sum256([]byte(out))
		out = strings.ToValidUTF8(out[:longest-40], "") + "… " + hex.EncodeToString(sum[:8])
	}
	return out
}
