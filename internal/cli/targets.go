package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/docs"
)

func newEngines(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "engines",
		Short: "List the engines for --engine",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintln(a.out, "opmeter    the engine of this program; kernels in plain Go")
			return nil
		},
	}
}

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a profile",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(docs.ProfileSchema)
			return err
		},
	}
}
