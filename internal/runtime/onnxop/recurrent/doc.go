// Package recurrent holds ONNX's recurrent layers: RNN, GRU and LSTM.
package recurrent
