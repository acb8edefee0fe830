package cortexm

// Kernels identifies kernel implementations: a family of runtimes on a tier of cores, as named in
// target files.
type Kernels struct{ Family, Tier string }

const (
	cmsisNN   = "tflm-cmsis-nn"
	reference = "tflm-reference"
)

// fast lists operators without weights that have optimised kernels in a family. Other operators
// run in plain C, at several times the cost. A family that is absent has its own kernels for
// everything.
var fast = map[string]map[string]bool{
	cmsisNN:         set("ADD", "MUL", "SOFTMAX", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
	"tflm-esp-nn":   set("ADD", "MUL", "SOFTMAX", "RELU", "RELU6", "PRELU", "HARD_SWISH", "MEAN"),
	"tflm-andes-nn": set("ADD", "MUL", "SOFTMAX", "RELU", "RELU6", "LOGISTIC", "TANH"),
	reference:       {},
}

// helium lists what CMSIS-NN adds for cores with Helium, by published cycles of single operators
// on a Cortex-M55.
var helium = set("MAXIMUM", "MINIMUM", "TRANSPOSE")

// onnxNames maps ONNX operators to equivalent TensorFlow Lite operators.
var onnxNames = map[string]string{
	"Add": "ADD", "QLinearAdd": "ADD", "Mul": "MUL", "QLinearMul": "MUL", "Softmax": "SOFTMAX", "QLinearSoftmax": "SOFTMAX", "Relu": "RELU", "Clip": "RELU6",
	"PRelu": "PRELU", "HardSwish": "HARD_SWISH", "ReduceMean": "MEAN", "Sigmoid": "LOGISTIC", "Tanh": "TANH", "Max": "MAXIMUM", "Min": "MINIMUM", "Transpose": "TRANSPOSE",
}

// optimised reports whether the family has its own kernel for an operator. Floating point is
// plain C in all families on TensorFlow Lite Micro.
func (k Kernels) optimised(op string, float bool) bool {
	list, ok := fast[k.Family]
	if !ok {
		return true
	}
	if name := onnxNames[op]; name != "" {
		op = name
	}
	return !float && (list[op] || k.Family == cmsisNN && k.Tier == "mve" && helium[op])
}

// folds reports whether the tool does constant folding before deployment; interpreters recompute
// constants in each inference.
func (k Kernels) folds() bool { return k.Family == "x-cube-ai" }
