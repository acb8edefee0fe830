package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/external/find"
)

const (
	// mcpProgram answers AI agents. It is a program of its own, because the library of the protocol
	// would make this one a fifth larger.
	mcpProgram = "opmeter-mcp"
	// mcpVariable is the environment variable that names it.
	mcpVariable = "OPMETER_MCP"
)

func newMCP(a *app) *cobra.Command {
	var (
		allow []string
		write string
		limit time.Duration
	)
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Answer AI agents (Model Context Protocol)",
		Long: `Offer opmeter to AI agents as tools of the Model Context Protocol, over standard input and
output: summary, profile, estimate, fit, import, compare, layers, explain_layer, advise. Agents
start this command themselves. Tools read files of the allowed folders only, and write none
without --write.`,
		Example: `  opmeter mcp
  opmeter mcp --allow models --allow traces
  opmeter mcp --allow models --write results --limit 5m`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error {
			args := []string{"-limit=" + limit.String(), "-write=" + write}
			for _, dir := range allow {
				args = append(args, "-allow="+dir)
			}
			return a.mcp(c, args)
		},
	}
	c.Flags().StringArrayVar(&allow, "allow", nil, "`DIR…`: folder that tools may read (default: the working folder)")
	c.Flags().StringVar(&write, "write", "", "`DIR`: folder that tools may write new files to (default: none)")
	spanVar(c, &limit, "limit", 2*time.Minute, 1, "time limit of a call", "a time above zero, such as 2m")
	return c
}

// mcp runs the program that answers agents until it ends.
func (a *app) mcp(c *cobra.Command, args []string) error {
	program, err := find.Here().Companion(mcpProgram, mcpVariable, "answers agents", `for Python: pip install "opmeter[mcp]"; archives contain it`)
	if err != nil {
		return withStatus(statusUse, err)
	}
	self, err := os.Executable()
	if err != nil {
		return withStatus(statusSource, fmt.Errorf("own program: %w", err))
	}
	cmd := exec.CommandContext(c.Context(), program, append([]string{"-opmeter=" + self}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.out, a.err
	if k, ok := a.out.(*keeper); ok {
		cmd.Stdout = k.Writer // a file goes to the program as it is
	}
	var group subprocess.Group
	group.Prepare(cmd)
	cmd.Cancel = func() error { group.Kill(); return nil }
	if err := group.Start(cmd); err != nil {
		return withStatus(statusSource, fmt.Errorf("%s does not start: %w", program, plainPath(err)))
	}
	err = cmd.Wait()
	group.Kill()
	if _, ok := errors.AsType[*exec.ExitError](err); ok && c.Context().Err() == nil {
		return withStatus(statusUse, fmt.Errorf("%s ended (%w): its message is above", mcpProgram, err))
	}
	return err
}
