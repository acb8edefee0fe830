// Package choose makes plans: it chooses structure, level and format of each layer so that the
// model costs least within a bound on the loss, or loses least within a bound on the cost.
//
// Each layer has a curve of points, one per measured change, each with a cost and a loss. Costs
// of layers add up; losses add up as their metric says ([Metric]). Choosing a point for each
// layer is the multiple-choice knapsack problem. Lagrangian relaxation gives the points on the
// lower convex hulls and a bound for all plans. Local search uses up the rest of the bound.
// States that the multiplier cannot exclude are searched exactly, up to a work limit. The order
// of computation is fixed: the same curves give the same plan.
//
// Curves do not include interactions between layers. A plan is therefore run, and its result
// corrects the curves for a second plan ([study.Correction]).
package choose
