// Package blocks finds the repeated blocks of layers of a profile, such as the layers of a
// transformer or the blocks of a stage of a residual network, and the parts of a language model:
// embedding, attention, MLP, norm, experts, head.
//
// Blocks are equal sequences of operators on equal shapes. Names that number the blocks help to
// find where a block begins, and find blocks whose layers run in different orders. A model without
// names needs none.
package blocks
