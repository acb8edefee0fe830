package op

import (
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// Attributes that a plan gives to operators which it makes of several. A node of a file that has one is refused, see [Registry.Check]:
// kernels trust them.
const (
	// AttrPads of CONV_2D and DEPTHWISE_CONV_2D are rows before, columns before, rows after and columns after of zeros that the
	// file puts around their picture with an operator of its own.
	AttrPads = "opmeter.pads"
	// AttrProducts of Attention says that query, key and value are operands of products of matrices as the file has them.
	AttrProducts = "opmeter.products"

	// A BATCH_MATMUL that has AttrScores computes an attention: the names of the operators of two numbers between the product of scores and
	// the softmax. Scores are their first number.
	AttrScores = "opmeter.scores"
	// AttrAdjoint are adj_x and adj_y of the first product, adj_y of the second one.
	AttrAdjoint = "opmeter.adjoint"
	// AttrBatches are axes before those of a matrix, [LeadAxes] of them for each operator and for the second product.
	AttrBatches = "opmeter.batches"
	// AttrExponent is beta of the softmax.
	AttrExponent = "opmeter.exponent"
	// AttrRank is that of the result.
	AttrRank = "opmeter.rank"
)

// LeadAxes is how many axes the scores of such an attention have at most before those of a matrix.
const LeadAxes = 3

// planPrefix begins the names of attributes that only plans give.
const planPrefix = "opmeter."

// refusePlanAttrs refuses a file's node with an attribute that only plans give.
func refusePlanAttrs(n *graph.Node) error {
	for name := range n.Attrs {
		if strings.HasPrefix(name, planPrefix) {
			return Malformed("attribute %q: the format has none whose name begins with %q", name, planPrefix)
		}
	}
	return nil
}
