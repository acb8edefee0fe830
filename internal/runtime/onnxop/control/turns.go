package control

import (
	"time"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// turns tracks a loop: its running time and the memory that it collects. Call end when the loop
// is over.
type turns struct {
	env     op.Env
	began   time.Time
	bounded bool // the number of turns is known
	held    int
	states  []int // what each state holds that is a container
}

func begin(env op.Env, bounded bool) *turns {
	return &turns{env: env, began: time.Now(), bounded: bounded}
}

// next is called before each iteration.
func (t *turns) next() error { return t.env.Turn(t.began, t.bounded) }

func (t *turns) hold(n int) error {
	t.held += n
	return t.env.Hold(n, t.bounded)
}

func (t *turns) end() { _ = t.hold(-t.held) } // giving back cannot fail

// collect keeps a copy of a value of an iteration.
func (t *turns) collect(s *stack, x *tensor.Tensor) error {
	s.push(own(x))
	return t.hold(x.Held() + perItem)
}

// perItem is the approximate size of a value beside its elements.
const perItem = 192

// carry accounts for changes of container states in an iteration: the elements that they have in
// common are shared.
func (t *turns) carry(before, after []*tensor.Tensor) error {
	for i, x := range after {
		if x == nil || !x.Type.IsContainer() {
			continue
		}
		if t.states == nil {
			t.states = make([]int, len(after))
		}
		was := before[i]
		n := t.states[i] + 8*len(x.Elems) + x.Beyond(was)
		if was != nil && was.Type.IsContainer() {
			n -= 8*len(was.Elems) + was.Beyond(x)
		}
		n = max(n, 0)
		if err := t.hold(n - t.states[i]); err != nil {
			return err
		}
		t.states[i] = n
	}
	return nil
}
