package chip

import "strings"

// Runtime is a family of runtimes and kernels with the figures of its cycle model.
type Runtime struct {
	// Name such as "tflm-cmsis-nn".
	Name string `yaml:"name,required"`
	// Title for people.
	Title string `yaml:"title"`
	// Versions that the figures hold for, in words.
	Versions string `yaml:"versions"`
	// Arena names the family of kernels of TensorFlow Lite Micro whose memory the runtime
	// needs, "" for another runtime: only the activations are then known.
	Arena string `yaml:"arena" enum:"reference,cmsis-nn,cmsis-nn-mve,mvp,mvp-first"`
	// Release is the year of the runtime's releases that the figures hold for, 0 for the
	// latest: operators and types that came later are not taken.
	Release int64 `yaml:"release"`
	// Code is the least and most memory that program code took beside the model in images
	// that were measured, nil when none were.
	Code *[2]Bytes `yaml:"code"`
	// Cortexm or MVP holds the figures of the cycle model of that name; the other is nil.
	Cortexm *Structural `yaml:"cortexm"`
	MVP     *Counted    `yaml:"mvp"`
	// Builds lists other ways of building the runtime than for speed with all units of
	// the core.
	Builds []Build `yaml:"builds"`
	// Calibration says what the figures were fitted to and how well they hold.
	Calibration *Calibration `yaml:"calibration"`
}

// Build is a way of building a runtime: the factors by which it changes the cycles of
// kinds of work, 0 for those that it leaves as they are.
type Build struct {
	// Name such as "small" (optimised for size) or "no-fpu".
	Name string `yaml:"name,required"`
	// Title for people, and From where the factors come from.
	Title string `yaml:"title"`
	From  string `yaml:"from"`
	// Factors by class of element types; those of Integer hold for 16 bits where Int16 has
	// none.
	Integer Terms `yaml:"integer"`
	Int16   Terms `yaml:"int16"`
	Float   Terms `yaml:"float"`
	// Band is the half-width in logarithms that the factors add where they are used.
	Band float64 `yaml:"band"`
}

// Build finds a way of building by name, nil when there is none.
func (r *Runtime) Build(name string) *Build {
	for i := range r.Builds {
		if r.Builds[i].Name == name {
			return &r.Builds[i]
		}
	}
	return nil
}

// Model names the cycle model that the runtime has figures of.
func (r *Runtime) Model() string {
	if r.MVP != nil {
		return "mvp"
	}
	return "cortexm"
}

// Structural has the figures of the cycle model for processors, package cortexm.
type Structural struct {
	// Family of kernels and Tier of cores, by which the model knows which operators
	// have kernels of their own.
	Family string `yaml:"family,required"`
	Tier   string `yaml:"tier,required"`
	// Pruned runtimes leave out channels whose weights are all zero.
	Pruned bool `yaml:"pruned"`
	// Integer has the figures of kernels for 8-bit integers, Int16 those for 16-bit
	// activations with 8-bit weights, Float those for floating point, nil where nothing
	// was measured.
	Integer Integer `yaml:"integer,required"`
	Int16   *Typed  `yaml:"int16"`
	Float   *Typed  `yaml:"float"`
	// Seen lists the networks that were fitted to: the share of each kind of work in
	// the cycles.
	Seen []Terms `yaml:"seen"`
}

// Integer has figures of kernels for 8-bit integers. Bands are half-widths in logarithms.
type Integer struct {
	// Cycles of each kind of work. Those in plain C may be left out: nothing is then
	// known of operators without a kernel of their own.
	Cycles Terms `yaml:"cycles,required" need:"move_element"`
	// Near is the band for networks like those fitted to, Far that of others, Layer
	// that of one layer.
	Near  float64 `yaml:"band_near"`
	Far   float64 `yaml:"band_far"`
	Layer float64 `yaml:"band_layer"`
	// Overhead is the half-width for the overhead of calls and operators that is added
	// by its share, 0 where the other half-widths hold it: networks that are mostly
	// overhead were among those that they were made from.
	Overhead float64 `yaml:"band_overhead"`
	// Bands of kinds of work that differ from Layer.
	Bands Terms `yaml:"bands"`
}

// Typed has figures of kernels in another element type than 8-bit integers. Bands are
// half-widths in logarithms.
type Typed struct {
	// From says where the figures come from.
	From string `yaml:"from"`
	// Measured is the kind of layer that was measured, "both" for convolutions with a
	// window and dense layers. Near is its band, Far that of kinds to which its cost was
	// carried.
	Measured string  `yaml:"measured,required" enum:"conv,dense,both"`
	Near     float64 `yaml:"band_near"`
	Far      float64 `yaml:"band_far"`
	// Overhead as in [Integer].
	Overhead float64 `yaml:"band_overhead"`
	// Cycles of each kind of work, 0 where nothing is known. Those of calls and operators
	// are the runtime's where they are 0.
	Cycles Terms `yaml:"cycles,required"`
}

// Has reports whether a kind of work is of those that were measured.
func (t *Typed) Has(term string) bool {
	switch t.Measured {
	case "both":
		return strings.HasPrefix(term, "conv") || strings.HasPrefix(term, "dense")
	}
	return strings.HasPrefix(term, t.Measured)
}

// Terms has a figure for each kind of work that kernels do, in the order of
// [TermNames].
type Terms [len(TermNames)]float64

// TermNames are the kinds of work as target files have them; package cortexm says what
// they are.
var TermNames = [...]string{
	"call", "op", "conv_mac", "conv_gather", "conv_window", "conv_output", "point_mac", "point_gather", "point_output",
	"depthwise_mac", "depthwise_output", "dense_mac", "dense_output",
	"pool_element", "element", "table_element", "move_element",
	"plain_mac", "plain_element", "plain_table", "plain_reduce", "plain_move",
}

// Counted has the figures of the cycle model for the MVP accelerator, package mvp.
type Counted struct {
	// Library is the generation of the accelerator's kernels, "" for the second.
	Library string `yaml:"library" enum:"first,second"`
	// Processor is the target whose figures hold for operators without their own.
	Processor string `yaml:"processor"`
	// Cycles of layers on the accelerator; package mvp says what each is paid for.
	// What is left out is 0: the term does not exist.
	Cycles map[string]float64 `yaml:"cycles" keys:"counted"`
	// Operators has the cycles of layers on the processor, by operator and then by the
	// type of the first input's elements, or [AnyType].
	Operators map[string]map[string]Operator `yaml:"operators"`
}

// AnyType stands for all element types.
const AnyType = "any"

// Operator has the cycles of one operator on the processor.
type Operator struct {
	Fixed   float64 `yaml:"fixed"`   // per layer
	Element float64 `yaml:"element"` // per element of the first output
	Input   float64 `yaml:"input"`   // per element of the first input
	Padded  float64 `yaml:"padded"`  // per element of the output beyond those of the input
	Byte    float64 `yaml:"byte"`    // per byte of the first output
	MAC     float64 `yaml:"mac"`     // per multiply-accumulate
	Tap     float64 `yaml:"tap"`     // per element that a pooling window reads
}

// tables lists the keys that tables of figures may have.
var tables = map[string][]string{"counted": {
	"conv.double",                    // accelerator, per inner loop with two products
	"conv.single",                    // accelerator, per inner loop with one product
	"conv.double_store",              // accelerator, per result of programs with two products
	"conv.single_store",              // accelerator, per result of programs with one product
	"conv.stride_noop",               // accelerator, per no-op that walks the output
	"conv.program",                   // accelerator, per program
	"dense.output",                   // accelerator, per output
	"dense.program",                  // accelerator, per program
	"dense_each.output",              // accelerator, per output where each has its program
	"depthwise_pixel.pair",           // accelerator, per stored pair
	"depthwise_pixel.program",        // accelerator, per program
	"depthwise.output",               // accelerator, per result
	"depthwise.noop",                 // accelerator, per no-op
	"max_pool.program",               // accelerator, per program
	"average_pool.program",           // accelerator, per program
	"average_pool_pixel.program",     // accelerator, per program
	"add.pair",                       // accelerator, per pair
	"add.program",                    // accelerator, per program
	"mul.pair",                       // accelerator, per pair
	"mul.program",                    // accelerator, per program
	"cpu.conv.program",               // processor, per program
	"cpu.conv.fixed",                 // processor, per layer
	"cpu.dense.fixed",                // processor, per layer
	"cpu.dense_each.output",          // processor, per output where each has its program
	"cpu.dense_each.fixed",           // processor, per layer where each output has its program
	"cpu.depthwise_pixel.program",    // processor, per program
	"cpu.depthwise_pixel.fixed",      // processor, per layer
	"cpu.depthwise.program",          // processor, per program
	"cpu.depthwise.segment",          // processor, per part of the output with a filter of its own
	"cpu.depthwise.fixed",            // processor, per layer
	"cpu.max_pool.program",           // processor, per program
	"cpu.max_pool.fixed",             // processor, per layer
	"cpu.average_pool.pixel",         // processor, per output pixel (check whether the kernel fits)
	"cpu.average_pool.program",       // processor, per program
	"cpu.average_pool_pixel.program", // processor, per program
	"cpu.average_pool_pixel.fixed",   // processor, per layer
	"cpu.add.program",                // processor, per program
	"cpu.add.fixed",                  // processor, per layer
	"cpu.mul.program",                // processor, per program
	"cpu.mul.fixed",                  // processor, per layer
	"cpu.transpose_conv.program",     // processor, per program
	"overlap.program",                // elapsed, per program beside the accelerator's cycles
	"overlap.depthwise_pixel.least",  // elapsed, least per program of the depthwise kernel with one per pixel, whatever accelerator and processor do
	"overlap.depthwise.cpu",          // share of the processor's cycles that do not overlap, of the depthwise kernel over runs of outputs
}}
