// Package recurrent holds TFLite's recurrent layers: RNN, LSTM and SVDF.
package recurrent
