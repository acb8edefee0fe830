package opmeter

import (
	"context"

	"github.com/opmeter/opmeter/internal/external"
)

// Interleaver interleaves profiles that are made at the same time, each in its own goroutine: a few
// inferences of one, then a few of the next, so that slow changes of the machine affect all of
// them equally. Profiles with opmeter's own engine still run one after the other, since only one
// measures in a process. The zero value is ready; all options of a comparison share one.
type Interleaver struct{ t external.Interleaver }

// Join adds a measurement of the caller, such as the loop of an application.
func (i *Interleaver) Join() *Participant { return &Participant{i.t.Join()} }

// Participant is a measurement of the caller, interleaved with profiles. It is for one goroutine.
type Participant struct{ t *external.Turn }

// Wait ends the current time slot, if any, and returns when the next one begins. With an error,
// which is the context's, there is no slot.
func (p *Participant) Wait(ctx context.Context) error { return p.t.Wait(ctx) }

// Leave ends the slot and takes the measurement out of the rotation.
func (p *Participant) Leave() { p.t.Leave() }
