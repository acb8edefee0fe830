package cortexm

// Kernels names what implements operators: a family of runtimes on a tier of
// cores, as target files have them in their settings.
type Kernels struct{ Family, Tier string }

const (
	cmsisNN   = "tflm-cmsis-nn"
	reference = "tflm-reference"
)

// fast lists operators without weights that a family has optimised kernels for.
// What is not listed runs in plain C, at a cost that is several times as high. A
// family that is not here has kernels of its own for everything.
var fast = map[string]map[string]bool{
	cmsisNN:         set("ADD", "MUL", "SOFTMAX", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
	"tflm-esp-nn":   set("ADD", "MUL", "SOFTMAX", "RELU", "RELU6", "PRELU", "HARD_SWISH", "MEAN"),
	"tflm-andes-nn": set("ADD", "MUL", "SOFTMAX", "RELU", "RELU6", "LOGISTIC", "TANH"),
	reference:       {},
}

// helium lists what CMSIS-NN adds for cores with Helium, by published cycles of
// single operators on a Cortex-M55.
var helium = set("MAXIMUM", "MINIMUM", "TRANSPOSE")

// onnxNames gives the TensorFlow Lite operator that does what one of ONNX does.
var onnxNames = map[string]string{
	"Add": "ADD", "QLinearAdd": "ADD", "Mul": "MUL", "QLinearMul": "MUL", "Softmax": "SOFTMAX", "QLinearSoftmax": "SOFTMAX", "Relu": "RELU", "Clip": "RELU6",
	"PRelu": "PRELU", "HardSwish": "HARD_SWISH", "ReduceMean": "MEAN", "Sigmoid": "LOGISTIC", "Tanh": "TANH", "Max": "MAXIMUM", "Min": "MINIMUM", "Transpose": "TRANSPOSE",
}

// optimised reports whether the family has a kernel of its own for an operator.
// Floating point is plain C in all families on TensorFlow Lite Micro.
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

// folds reports whether the tool computes operators on constants before
// deployment; interpreters do them anew in each inference.
func (k Kernels) folds() bool { return k.Family == "x-cube-ai" }
