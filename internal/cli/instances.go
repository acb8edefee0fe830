package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/neuralengine"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// began is when the process began, as far as instances of several processes need to know.
var began = time.Now()

// The variables by which the Neural Engine is told to record.
const (
	envProfiling = "ENGINE_PROFILING" // its presence counts, not its value
	envInstances = "INST_NUM"
)

// recorded reports whether the run is to be recorded.
func (r *runCommand) recorded() bool {
	_, there := os.LookupEnv(envProfiling)
	return there || r.instances > 0 || len(r.profiles) > 0
}

// instancesOf reads INST_NUM: what is not a number above 0 is 1, as there.
func instancesOf(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// record runs the model in one or more sessions at the same time and writes what they did.
func (r *runCommand) record(ctx context.Context, m *opmeter.Model, o opmeter.RunOptions) error {
	sessions, err := opmeter.NewSessions(m, o, max(r.instances, 1))
	if err != nil {
		return told(err)
	}
	defer func() {
		for _, s := range sessions {
			s.Close()
		}
	}()
	if err := opmeter.RunConcurrently(ctx, sessions, r.runs); err != nil {
		return told(err)
	}
	ps := make([]*profile.Profile, len(sessions))
	for i, s := range sessions {
		var err error
		if ps[i], err = s.Profile(); err != nil {
			return told(err)
		}
	}
	whole := ps[0]
	if len(sessions) > 1 {
		var err error
		if whole, err = opmeter.MergeSessions(sessions); err != nil {
			return told(err)
		}
	}
	stop := r.write(sessions[0], m.Name()) // what was computed, before what is told of it
	if stop != nil {
		if e, ok := errors.AsType[*statusError](stop); !ok || e.status != statusSource {
			return stop
		}
	}
	return errors.Join(stop, r.keep(ps, whole))
}

// keep writes the files of the instances, and of all in one.
func (r *runCommand) keep(ps []*profile.Profile, whole *profile.Profile) error {
	var wrote []string
	if _, there := os.LookupEnv(envProfiling); there || r.instances > 0 {
		stem, files, err := neuralengine.Write("", ps, neuralengine.FolderOptions{Instances: instancesOf(os.Getenv(envInstances)), Started: began, Now: time.Now()})
		if err != nil {
			return withStatus(statusUse, plainPath(err))
		}
		wrote = files
		if len(ps) > 1 {
			if err := report.File(stem+".opmeter", whole, report.Options{}); err != nil {
				return withStatus(statusUse, plainPath(err))
			}
			wrote = append(wrote, stem+".opmeter")
		}
	}
	for _, path := range r.profiles {
		if err := report.File(path, whole, report.Options{}); err != nil {
			return withStatus(statusUse, plainPath(err))
		}
		wrote = append(wrote, path)
	}
	for _, path := range wrote {
		fmt.Fprintf(r.a.out, "recorded %s\n", text.Clean(path))
	}
	return nil
}
