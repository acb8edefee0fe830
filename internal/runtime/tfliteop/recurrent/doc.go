// Package recurrent implements TFLite's recurrent layers: RNN, LSTM and SVDF.
package recurrent
