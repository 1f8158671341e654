#define AG_LANES 8
#define AG_LANES_SUM ag_lanes_sum_neon
