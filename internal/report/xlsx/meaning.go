package xlsx

// Meaning says what each column of "Layers" is, by its key, that is not a quantity:
// these carry their own.
var Meaning = map[string]string{
	"index":               "Position in the order in which layers run, from 0; layers of control-flow bodies follow their owner.",
	"op":                  "Operator as the model names it, with its domain where that is not the format's own.",
	"cumulative":          "Sum of the shares of this row and those above it. Sort by latency_s to see which few layers take most of the time.",
	"accelerated":         "Whether the accelerator runs the layer: yes, or no with the cause, such as operator, type or limit. The note has the reason.",
	"outputs":             "Shapes of the outputs.",
	"inputs":              "Shapes of the inputs without constants.",
	"options":             "The operator's options in words; strides and windows are width x height.",
	"name":                "The node's name in the model, or that of its first output.",
	"state":               "What became of the layer: ran, fused, folded, not_reached and so on, as in JSON. Layers not reached are in no sum.",
	"note":                "Why the layer has no time, or the accelerator does not take it: fused into another, computed once at load, not supported, not reached, a limit exceeded.",
	"latency_median_s":    "Middle sample, in seconds.",
	"latency_mean_s":      "Arithmetic mean of the samples, in seconds.",
	"latency_min_s":       "Shortest sample, in seconds.",
	"latency_max_s":       "Longest sample, in seconds.",
	"latency_p90_s":       "90th percentile, in seconds; given from 36 samples on.",
	"latency_p99_s":       "99th percentile, in seconds; given from 368 samples on.",
	"latency_stddev_s":    "Sample standard deviation, in seconds.",
	"latency_ci95_low_s":  "Lower end of the 95 % confidence interval of the median, in seconds.",
	"latency_ci95_high_s": "Upper end of that interval, in seconds.",
	"latency_n":           "Number of samples.",
	"share_ci95_low":      "Lower end of the 95 % confidence interval of the share.",
	"share_ci95_high":     "Upper end of that interval.",
	"rank_first":          "First place that the layer may have by time, from 1 for the slowest.",
	"rank_last":           "Last place that it may have. Places that overlap are not settled.",
	"op_no":               "Number of the operator, by which the sheet \"By operator\" adds up: a spreadsheet's criteria would take signs in names for patterns.",
}

// sparseMeaning says what the columns of "Sparse what-if" are, in their order.
var sparseMeaning = [][2]string{
	{"90% 4x1 perf ratio", "Ratio table: dense time over sparse time of a product with weights of this shape at 90 % block sparsity. To be edited; 4 is the Neural Engine profiler's constant for 90, 80 and 70 % alike."},
	{"80% 4x1 perf ratio", "The same at 80 %."},
	{"70% 4x1 perf ratio", "The same at 70 %."},
	{"others", "The divisor for every other target; 1 leaves the time as it is."},
	{"post op", "Operators that were fused into this one."},
	{"weight shape", "Shape of the constant weights of a matrix product, as stored."},
	{"weight sparse ratio", "Share of all-zero blocks of the weights; the column \"sparse block\" names the block. \"unknown\" where the weights were not looked at."},
	{"sparse support", "TRUE for operators that can be sparse: a matrix product (InnerProduct, Matmul, Gemm, MatMul, FULLY_CONNECTED) with constant weights of two dimensions, the first divisible by 4."},
	{"operator latency (ms)", "latency_s of Layers in milliseconds, as a number, so that either sheet can be sorted by itself."},
	{"aim to weight sparse ratio", "The sparsity aimed for, to be edited: 90, 80 or 70 % take the ratio of that column, any other the ratio of other sparsities, an empty cell keeps the time. Operators that are 50 % sparse already start empty."},
	{"sparse kernel pref ratio", "The ratio that follows from shape and target."},
	{"aim to sparse latency(ms)", "operator latency over that ratio, in milliseconds."},
	{"sparse improve", "total latency over total aim to sparse latency: how many times faster."},
	{"sparse support latency ratio", "Share of the total latency in operators that can be sparse: what a gain can come from."},
	{"sparse block", "Rows x columns of the block of \"weight sparse ratio\": 1x16 for float weights, 4x16 for 8-bit ones, 4x1 where 8-bit weights are the first operand."},
	{"element sparsity", "Share of weights that are zero, wherever they lie. It says little about blocks: 90 % zeros at random places leave 0.1 % of 4x16 blocks empty."},
	{"1x4", "Share of all-zero blocks of 1 row and 4 columns; 4x1, 1x16 and 4x16 likewise."},
	{"2:4", "Share of groups of four in a row with two zeros or more, the pattern that some accelerators need throughout."},
	{"rows", "Share of rows that are zero as a whole; columns likewise."},
}
