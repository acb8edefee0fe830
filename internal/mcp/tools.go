package mcp

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool: its name, what it is called for people, and what it does.
type tool struct {
	name, title, text string
	saves             bool // may write a file
	add               func(s *server, m *mcp.Server, t *tool)
}

// tools lists all tools. docs/reference/mcp.md follows from it.
var tools = []tool{
	{"summary", "Count a model", "Count without measuring: operators, shapes, multiply-accumulates (MACs), parameters and the memory plan of a model. It runs nothing and takes milliseconds.", true, adds(summary)},
	{"profile", "Measure a model", "Measure a model on this computer: latency with its 95 % confidence interval, and the time of each layer. Measures for the given seconds.", true, adds(measure)},
	{"estimate", "Estimate a model on a chip", "Predict latency, memory and energy of a model on a chip that is absent, such as stm32l4r5 or esp32-s3. fit lists the ids of targets.", true, adds(estimate)},
	{"fit", "Find targets for a model", "Estimate a model on all targets, which are chips and cores, and say which ones hold it within the limits, fastest first.", false, adds(fit)},
	{"import", "Read a profile of another tool", "Read a profile or trace that another tool made, such as ONNX Runtime, TensorRT or a Chrome trace. The format is detected. With a model its layers get shapes and work.", false, adds(importRecord)},
	{"compare", "Compare profiles", "Compare two or more profiles, records of other tools or model files: which is faster, and which operators differ. Ratios are relative to the first. Model files are counted and have no times.", true, adds(compare)},
	{"layers", "List layers of a profile", "List layers of a profile in an order, page by page.", false, adds(layers)},
	{"explain_layer", "Explain a layer", "Show all that a profile knows of one layer: time, share, bottleneck, shapes, options, kernel, work and memory.", false, adds(explain)},
	{"advise", "Advise what to change", "List what would make a model faster or smaller, with the expected gain. Measures the model first, or estimates it with a target, or reads a profile.", false, adds(advise)},
}

// adds makes the function that adds a tool to the server of the protocol.
func adds[In, Out any](do func(c *call, in *In) (*Out, string, error)) func(*server, *mcp.Server, *tool) {
	return func(s *server, m *mcp.Server, t *tool) {
		in, err := jsonschema.For[In](nil)
		if err != nil {
			panic(err) // a defect of the types in this package: every test of it shows that
		}
		restrict(in)
		yes, no := true, false
		def := &mcp.Tool{
			Name: t.name, Title: t.title, Description: t.text, InputSchema: in,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.saves, DestructiveHint: &no, IdempotentHint: t.name != "profile", OpenWorldHint: &no},
		}
		if t.saves && s.paths.write == nil {
			def.Annotations.ReadOnlyHint = yes
		}
		mcp.AddTool(m, def, func(ctx context.Context, req *mcp.CallToolRequest, args In) (*mcp.CallToolResult, *Out, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(s.ctx, cancel)()
			out, text, err := do(&call{ctx: ctx, s: s, req: req}, &args)
			if err != nil {
				return nil, nil, err
			}
			if err := bound(out); err != nil {
				return nil, nil, err
			}
			if p, ok := any(out).(paged); ok {
				// Lines of the text are those of the rows.
				text = cutLines(text, p.count())
				if h := p.hint(); h != "" {
					text += "\n" + h
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: clipText(text)}}}, out, nil
		})
	}
}

// limit bounds the values of an argument.
type limit struct{ least, most float64 }

// limits bounds numbers, by the name of the argument.
var limits = map[string]limit{
	"threads": {1, 256}, "seconds": {0.05, 60}, "batch": {1, 1 << 20},
	"offset": {0, 1 << 31}, "limit": {1, 500}, "layer": {0, 1 << 31},
	"latency_s": {1e-9, 1e6}, "ram_bytes": {1, 1 << 40}, "flash_bytes": {1, 1 << 40},
}

// Bounds of texts and lists in arguments.
const (
	longestText = 4096
	mostItems   = 64
)

// restrict adds bounds to a schema: the protocol's library refuses what exceeds them.
func restrict(s *jsonschema.Schema) {
	for name, p := range s.Properties {
		if l, ok := limits[name]; ok {
			p.Minimum, p.Maximum = &l.least, &l.most
		}
		n, items := longestText, mostItems
		switch {
		case p.Type == "string":
			p.MaxLength = &n
		case p.Items != nil:
			p.MaxItems, p.Items.MaxLength = &items, &n
		case p.AdditionalProperties != nil && p.Type == "object":
			p.MaxProperties, p.AdditionalProperties.MaxLength = &items, &n
		}
	}
}

// marker begins the lines of a text that belong to rows.
const marker = "\x00"

// cutLines keeps the lines of the first rows.
func cutLines(text string, rows int) string {
	var keep []string
	for line := range strings.SplitSeq(text, "\n") {
		if row, ok := strings.CutPrefix(line, marker); ok {
			if rows--; rows < 0 {
				continue
			}
			line = row
		}
		keep = append(keep, line)
	}
	return strings.Join(keep, "\n")
}

// clipText bounds a text, and keeps the last line, which says how to get more.
func clipText(text string) string {
	if len(text) <= maxText {
		return text
	}
	last := text[strings.LastIndexByte(text, '\n')+1:]
	last = clipTo(last, 300)
	head := strings.ToValidUTF8(text[:maxText-len(last)-8], "")
	return head[:strings.LastIndexByte(head+"\n", '\n')] + "\n…\n" + last
}

// folder makes a folder for what the program writes in a call.
func (s *server) folder() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(s.store.dir, "out")
	if err != nil {
		return "", nil, fmt.Errorf("folder for the result: %w", cause(err))
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}
