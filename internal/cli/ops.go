package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/base/jsonx"
)

func newOps(a *app) *cobra.Command {
	var format, typ, out string
	c := &cobra.Command{
		Use:   "ops [NAME]",
		Short: "List the operators that the engine runs, by format and type",
		Example: `  opmeter ops
  opmeter ops conv
  opmeter ops --model tflite --type int8`,
		Args: atMostOne,
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = strings.ToLower(args[0])
			}
			if format != "" && format != "tflite" && format != "onnx" {
				return useError("--model %q: use tflite or onnx", format)
			}
			all := engine.Operators()
			if known := types(all); typ != "" && !slices.Contains(known, typ) {
				return useError("--type %q: no such type; use one of %s", typ, strings.Join(known, ", "))
			}
			if out != "table" && out != "json" {
				return useError("--format %q: use table or json", out)
			}
			var list []engine.Operator
			for _, e := range all {
				if format != "" && e.Format != format || typ != "" && len(e.Types) > 0 && !slices.Contains(e.Types, typ) || !strings.Contains(strings.ToLower(e.Op), name) {
					continue
				}
				list = append(list, e)
			}
			if len(list) == 0 {
				return withStatus(statusGate, fmt.Errorf("no operator%s", which(args, format, typ)))
			}
			if out == "json" {
				return jsonx.MarshalWrite(a.out, list)
			}
			return a.printOps(list)
		},
	}
	c.Flags().StringVar(&format, "model", "", "`FORMAT`: only operators of tflite or onnx")
	c.Flags().StringVar(&typ, "type", "", "`TYPE`: only operators that support this type, such as int8")
	c.Flags().StringVar(&out, "format", "table", "`NAME`: table or json")
	return c
}

// which says which operators were asked for.
func which(args []string, format, typ string) string {
	s := ""
	if len(args) > 0 {
		s += fmt.Sprintf(" with %q in its name", args[0])
	}
	if format != "" {
		s += " in " + format
	}
	if typ != "" {
		s += " takes " + typ
	}
	return s
}

// types lists the element types that operators compute in, sorted.
func types(all []engine.Operator) []string {
	var out []string
	for _, d := range all {
		out = append(out, d.Types...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// printOps writes one line an operator; the versions of an operator share it.
func (a *app) printOps(list []engine.Operator) error {
	last, n := "", map[string]int{}
	for i, e := range list {
		name := e.Op
		if e.Domain != "" {
			name = strings.TrimPrefix(e.Domain, "tflite.") + ":" + e.Op
		}
		if i > 0 && list[i-1].Op == e.Op && list[i-1].Domain == e.Domain && slices.Equal(list[i-1].Types, e.Types) {
			continue
		}
		if e.Format != last {
			fmt.Fprintf(a.out, "%s\n", map[string]string{"tflite": "TFLite", "onnx": "ONNX"}[e.Format])
			last = e.Format
		}
		n[e.Format+name]++
		types := strings.Join(e.Types, " ")
		if len(e.Types) == 0 {
			types = "any type"
		}
		line := fmt.Sprintf("  %-36s %s", name, types)
		if a.width > 20 && len(line) > a.width {
			line = line[:a.width-1] + "…"
		}
		fmt.Fprintln(a.out, line)
	}
	fmt.Fprintln(a.out, plural(len(n), "operator"))
	return nil
}
