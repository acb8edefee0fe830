package cli

import "github.com/spf13/cobra"

func newBuild(*app) *cobra.Command { return &cobra.Command{Use: "build", Hidden: true} }
