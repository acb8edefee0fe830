// Package all lists the protocols of devices.
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

// Options configures the protocols.
type Options struct {
	// Output receives tensors from a device, such as a model's outputs: the name, the index and
	// the bytes. nil ignores them.
	Output func(name string, index int, data []byte)
	// Restart restarts a device that gives one inference per start; nil if that is not possible.
	Restart func(context.Context) error
	// Tiny configures the protocol of MLPerf Tiny firmware.
	Tiny tiny.Options
}

// Protocols returns all protocols, the most specific first.
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
