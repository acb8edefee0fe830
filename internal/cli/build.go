package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/netspec"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/report"
)

func newBuild(a *app) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "build SPEC",
		Short: "Build a model with random weights from a YAML description",
		Long: `Build a .tflite or .onnx model with random weights from a short YAML description, to profile a
network before it is trained. The same description and seed give the same bytes. All other
commands take the description itself, too. An ONNX model is float32, and its images are NCHW.

Layers: ` + strings.Join(netspec.Ops(), ", ") + `.
docs/reference/network-yaml.md explains them. Archives and sources have networks to start from in
examples/, Debian packages in /usr/share/doc/opmeter/examples.`,
		Example: `  opmeter build examples/resnet8.yaml
  opmeter build examples/mobilenet_v2.yaml -o net.onnx
  opmeter profile net.yaml`,
		Args: one("the description of a network (.yaml)"),
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				out = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0])) + ".tflite"
			}
			end := strings.ToLower(filepath.Ext(out))
			if end != ".tflite" && end != ".onnx" {
				return useError("-o %s: build writes .tflite and .onnx files: name it %s.tflite", out, strings.TrimSuffix(out, filepath.Ext(out)))
			}
			if err := writable(out, args[0]); err != nil {
				return err
			}
			if is := modelfile.Describe(args[0]); is != "" {
				return withStatus(statusInput, fmt.Errorf("%s: it is %s; build takes the description of a network (.yaml)", args[0], is))
			}
			m, err := netspec.File(args[0])
			if err != nil {
				return withStatus(statusInput, plainPath(err))
			}
			encode := tflite.Encode
			if end == ".onnx" {
				encode = onnx.Encode
				m, err = netspec.ONNX(m)
			}
			var data []byte
			if err == nil {
				data, err = encode(m)
			}
			if err != nil {
				return withStatus(statusInput, fmt.Errorf("%s: %w", args[0], err))
			}
			if err := atomicfile.Write(out, data); err != nil {
				return withStatus(statusUse, plainPath(err))
			}
			fmt.Fprintf(a.out, "wrote %s: %s, %s\n", out, plural(len(m.Main().Nodes), "operator"), report.Bytes(int64(len(data))))
			return nil
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "`FILE`: output file, .tflite or .onnx (default: the name with .tflite, here)")
	return c
}
