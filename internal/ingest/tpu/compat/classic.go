package compat

// Classic is what only the converter of BM1684 and BM1684X uses.
type Classic struct{}
