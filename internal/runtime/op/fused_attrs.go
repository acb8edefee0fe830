package op

import (
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// Attributes that planning passes set on operators that they fuse. A node of a file with such an
// attribute is rejected, see [Registry.Check], because kernels trust their values.
const (
	// AttrPads of CONV_2D and DEPTHWISE_CONV_2D is the zero padding (rows before, columns before,
	// rows after, columns after) that the file applies to their input with a separate operator.
	AttrPads = "opmeter.pads"
	// AttrProducts of Attention says that query, key and value are operands of MatMul nodes in
	// the layout that the file gives them.
	AttrProducts = "opmeter.products"

	// A BATCH_MATMUL with AttrScores computes an attention. AttrScores lists the names of the
	// binary operators between the score MatMul and the softmax. The scores are their first
	// operand.
	AttrScores = "opmeter.scores"
	// AttrAdjoint holds adj_x and adj_y of the first MatMul and adj_y of the second one.
	AttrAdjoint = "opmeter.adjoint"
	// AttrBatches holds the batch dimensions (before the two matrix dimensions), [LeadAxes] of
	// them for each operator and for the second MatMul.
	AttrBatches = "opmeter.batches"
	// AttrExponent is beta of the softmax.
	AttrExponent = "opmeter.exponent"
	// AttrRank is the rank of the result.
	AttrRank = "opmeter.rank"

	// AttrAxis of SOFTMAX is the axis along which it works, where the file transposes that axis to
	// the end and back.
	AttrAxis = "opmeter.axis"

	// AttrTimesInput of LOGISTIC says that its results are multiplied by its input.
	AttrTimesInput = "opmeter.times_input"
)

// LeadAxes is the maximum number of batch dimensions that the scores of a fused attention have.
const LeadAxes = 3

// planPrefix begins the names of attributes that only planning passes set.
const planPrefix = "opmeter."

// refusePlanAttrs rejects a node of a file with an attribute that only planning passes set.
func refusePlanAttrs(n *graph.Node) error {
	for name := range n.Attrs {
		if strings.HasPrefix(name, planPrefix) {
			return Malformed("attribute %q: the format has none whose name begins with %q", name, planPrefix)
		}
	}
	return nil
}
