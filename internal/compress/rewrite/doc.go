// Package rewrite makes changed models: with weights pruned or stored in other number formats
// ([Apply]), or only the part that depends on some operators ([Suffix]). Changed models are
// graphs in memory like any other; [Encode] writes them as files of their format.
//
// The original model stays unchanged. The new one shares all unchanged parts with it, and is
// valid as long as the files of the original are open.
package rewrite
