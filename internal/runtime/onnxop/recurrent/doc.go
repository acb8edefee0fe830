// Package recurrent implements ONNX's recurrent layers: RNN, GRU and LSTM.
package recurrent
