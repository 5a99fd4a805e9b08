// The first principal direction.
#pragma once

#include <cstdint>
#include <vector>

namespace assay {

// The inner product of n numbers.
double dot(const double* a, const double* b, int64_t n);

// The eigenvector, of length 1 and either sign, of the largest eigenvalue of a symmetric matrix [n,n] without
// negative eigenvalues: |A v - lambda v| <= 1e-12 lambda. By Lanczos' method with full orthogonalisation;
// empty where that is not quick, and for a matrix of zeros. Not finite matrices have NaN.
std::vector<double> leading_eigenvector(const std::vector<double>& matrix, int64_t n);

}  // namespace assay
