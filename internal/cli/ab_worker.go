package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/measure/ab/worker"
)

// newWorker is the process that ab starts for each alternative. It answers blocks of inferences on
// standard output. It is not for people.
func newWorker(a *app) *cobra.Command {
	var f workerFlags
	c := &cobra.Command{
		Use:    workerVerb + " MODEL",
		Short:  "Answer blocks of inferences, for opmeter ab",
		Hidden: true,
		Args:   one("a model file"),
		RunE: func(c *cobra.Command, args []string) error {
			err := a.work(c, &f, args[0])
			if err == nil {
				return nil
			}
			status := statusSource
			if e, ok := errors.AsType[*statusError](err); ok {
				status = e.status
			}
			return errors.Join(err, worker.Refuse(a.out, err, status))
		},
	}
	f.add(a, c)
	return c
}

// work answers the requests of ab for a model.
func (a *app) work(c *cobra.Command, f *workerFlags, model string) error {
	o, err := f.options(c)
	if err != nil {
		return err
	}
	return a.withModel(model, func(m *opmeter.Model) error {
		t, err := opmeter.NewTimer(c.Context(), m, o)
		if err != nil {
			return told(err)
		}
		defer t.Close()
		return told(worker.Serve(c.Context(), a.in, a.out, t))
	})
}
