// Package all lists the protocols that devices speak.
package all

import (
	"context"

	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/agent"
	"github.com/opmeter/opmeter/internal/device/marks"
	"github.com/opmeter/opmeter/internal/device/mltk"
	"github.com/opmeter/opmeter/internal/device/sensiml"
	"github.com/opmeter/opmeter/internal/device/tflm"
	"github.com/opmeter/opmeter/internal/device/tiny"
)

// Options are what some protocols are told.
type Options struct {
	// Output takes tensors that a device sends, such as a model's outputs: the name, the
	// position and the bytes. nil for nobody.
	Output func(name string, index int, data []byte)
	// Restart starts a device again that gives one inference a start, nil where nothing can.
	Restart func(context.Context) error
	// Tiny is for boards with the firmware of MLPerf Tiny.
	Tiny tiny.Options
}

// Protocols are all protocols, the surest first.
func Protocols(o Options) []*device.Protocol {
	return []*device.Protocol{
		agent.New(agent.Options{Output: o.Output}),
		marks.Protocol(),
		sensiml.Protocol(nil),
		mltk.Protocol(o.Restart),
		tiny.Protocol(o.Tiny),
		tflm.Protocol(),
	}
}
