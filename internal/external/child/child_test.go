package child

import (
	"bytes"
	"testing"

	"github.com/opmeter/opmeter/internal/external"
)

// TestFirstMessage answers messages that come in place of a request: one that stops the child
// before it got any does not mean another release.
func TestFirstMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first external.Message
		error bool
	}{
		"stop":             {external.Message{Stop: true}, false},
		"another protocol": {external.Message{Request: &external.Request{Protocol: external.Protocol + 1}}, true},
		"none":             {external.Message{Go: true}, true},
	} {
		var in, out bytes.Buffer
		if err := external.NewPipe(nil, &in).Send(&c.first); err != nil {
			t.Fatal(err)
		}
		Serve(&in, &out, nil, func(int) { t.Errorf("%s: the process exits", name) })
		pipe := external.NewPipe(&out, nil)
		if m, err := pipe.Receive(); err != nil || m.Progress == nil || m.Progress.Phase != external.Starting {
			t.Fatalf("%s: %+v, %v before the answer", name, m, err)
		}
		m, err := pipe.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if (m.Error != nil) != c.error || m.Done == c.error {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
