// Package rewrite makes changed models: with weights pruned or stored as other numbers
// ([Apply]), or only what depends on some operators ([Suffix]). Changed models are graphs in
// memory like any other, and [Encode] writes them as files of their format.
//
// The model that is changed stays as it is; the new one shares with it what did not change, and is
// valid as long as the files of the old one are open.
package rewrite
