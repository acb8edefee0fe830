package cli

import (
	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/docs"
)

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of profiles",
		Args:  none,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(docs.ProfileSchema)
			return err
		},
	}
}
