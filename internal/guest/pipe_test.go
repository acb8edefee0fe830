package guest

import (
	"bytes"
	"reflect"
	"testing"
)

// What one side sends, the other one receives.
func TestPipe(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := NewPipe(&b, &b)
	for _, m := range []*Message{
		{Request: &Request{Protocol: Protocol, Engine: "x", Time: 1e9, Task: &Task{Model: "m", Options: []Option{{"a", "b"}}, Carry: map[int]int{0: 1}}}},
		{Done: true},
		{Error: Errorf(Failed, "%s", "no")},
	} {
		if err := p.Send(m); err != nil {
			t.Fatal(err)
		}
		got, err := p.Receive()
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v, %v, want %+v", got, err, m)
		}
	}
}
