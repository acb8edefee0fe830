// Package speed finds what each layer of a model gains from fewer or narrower weights: performance
// profiles.
//
// [Measure] runs models in which all layers have the same change in turns with the unchanged one, in
// one process, with the same kernels, so that slow changes of the machine meet both alike. Filters and channels, which make other
// layers smaller, too, are taken out group by group. What
// the engine computes together is one time: it is given to the layer among it, or shared among
// several by their multiply-accumulates. [Estimate] asks the cycle models of targets, [Count]
// counts operations.
package speed
