// Package choose makes plans: which structure, level and numbers each layer gets so that the
// model costs least within a bound on the loss, or loses least within a bound on the cost.
//
// A layer is a curve: points of a cost and a loss, one for each change that was measured. Costs
// of layers add up, and losses do in the way of their metric ([Metric]). Choosing a point for
// each layer is then the multiple-choice knapsack problem. A multiplier that makes a loss a cost
// gives the points that are best for some bound (those of the lower convex hulls) and a bound
// that no plan can be below; local search fills what the hulls leave of the bound; and states
// that the multiplier cannot rule out are looked through exactly, up to a limit of work.
// Everything is computed in a fixed order: the same curves give the same plan.
//
// What layers do to each other is not in the curves: a plan is run, and what comes of it corrects
// the curves for a second one ([Correction]).
package choose
