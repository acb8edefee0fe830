package work

import (
	"context"
	"runtime"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	enginefind "github.com/opmeter/opmeter/internal/external/find"
	"github.com/opmeter/opmeter/internal/server/queue"
)

// Offered finds out what this computer can do: its engines and boards, as opmeter lists them.
// What cannot be listed is not offered.
func Offered(ctx context.Context, r *Runner) queue.Offers {
	o := queue.Offers{Targets: []string{"host", "file"}, CPUs: []string{runtime.GOARCH}, Engines: []string{"opmeter"}, Boards: []string{}}
	var engines struct {
		Engines []struct {
			Engine string `json:"engine"`
			Path   string `json:"path"`
		} `json:"engines"`
	}
	if out, err := r.run(ctx, "", []string{"engines", "--format=json"}, nil); err == nil && jsonx.Unmarshal([]byte(out), &engines) == nil {
		for _, e := range engines.Engines {
			if e.Path != "" {
				o.Engines = append(o.Engines, e.Engine)
			}
		}
	}
	if out, err := r.run(ctx, "", []string{"devices", "--format=json"}, nil); err == nil {
		if o.Boards = boards(out); len(o.Boards) > 0 {
			o.Targets = append(o.Targets, "board")
		}
	}
	return o
}

// boards reads the ports of boards from what opmeter devices prints. Computers have serial ports
// with nothing behind them.
func boards(out string) []string {
	names := []string{}
	var list struct {
		Ports []struct {
			Name  string `json:"name"`
			USB   bool   `json:"usb"`
			State string `json:"state"`
		} `json:"ports"`
	}
	if jsonx.Unmarshal([]byte(out), &list) != nil {
		return names
	}
	for _, p := range list.Ports {
		if p.USB || p.State != "silent" {
			names = append(names, p.Name)
		}
	}
	return names
}

// Engines lists the names of all engines that opmeter knows, whether a worker has them or not.
func Engines() []string {
	out := []string{"opmeter"}
	for i := range enginefind.Engines {
		out = append(out, enginefind.Engines[i].Name)
	}
	return out
}

// Target is something that models are measured on or estimated for.
type Target struct {
	ID    string `json:"id"`
	About string `json:"about"`
}

// Targets lists the targets that opmeter knows.
func (r *Runner) Targets(ctx context.Context) (list []Target, err error) {
	out, err := r.run(ctx, "", []string{"targets"}, nil)
	for line := range strings.Lines(out) {
		id, about, ok := strings.Cut(line, " ")
		if ok {
			list = append(list, Target{id, strings.TrimSpace(about)})
		}
	}
	return list, err
}
